"""What surrounds a tensor, a task, an event, an operator or a layer of one rank: views, and a drawing.

Views are records without words or colours; reporters turn them into text, JSON or a drawing.
"""
