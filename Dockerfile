# The action's image, which is a plain command line as well:
#   docker run --rm -v "$PWD:/github/workspace" -w /github/workspace IMAGE check gen/
# `docker build .` needs no arguments and no BuildKit. The user stays root, as GitHub asks of an action's
# image: a checkout belongs to the runner, whose number no image can know.

FROM python:3.12-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1

# The locks name every wheel by its hash: nothing is resolved and nothing compiled.
COPY requirements /src/requirements
RUN python3 -m pip install --root /image --prefix /usr/local --no-compile \
        --no-deps --only-binary=:all: --require-hashes --requirement /src/requirements/runtime.txt \
    && python3 -m pip install \
        --no-deps --only-binary=:all: --require-hashes --requirement /src/requirements/build.txt

COPY LICENSE README.md pyproject.toml /src/
COPY mkcov_action /src/mkcov_action
RUN python3 -m pip install --root /image --prefix /usr/local --no-compile \
        --no-deps --no-build-isolation --no-index /src \
    # -I: a workflow's PYTHONPATH and the files of its workspace are not ours to import
    && sed -i '1s/$/ -I/' /image/usr/local/bin/mkcov \
    && python3 -m compileall -q -s /image --invalidation-mode unchecked-hash /image/usr/local/lib

# The base image comes without the standard library's bytecode, and a container forgets what it compiled.
# So the demos are audited here, which proves the installation, and the bytecode that this left is taken along.
COPY fixtures/demo /demo
RUN cp -a /image/. / && unset PYTHONDONTWRITEBYTECODE \
    && mkcov check /demo/wired --json - --sarif /tmp/sarif --summary /tmp/summary --annotations >/dev/null 2>&1 \
    && ! mkcov check /demo/unwired >/dev/null \
    && find /usr/local/lib -name site-packages -prune -o -name '*.pyc' -exec cp -a --parents -t /image {} +

FROM python:3.12-slim
LABEL org.opencontainers.image.title="mkcov" \
      org.opencontainers.image.description="Proves, without a GPU, that a Mirage megakernel is wired" \
      org.opencontainers.image.authors="mkcov contributors" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="docker.io/library/python:3.12-slim"
COPY --from=build /image /
ENTRYPOINT ["/usr/local/bin/mkcov"]
