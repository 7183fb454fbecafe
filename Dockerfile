# `docker build -t sealegs .`: the web app over your runs, and every command. How to run both, and a Space: docs/app.md.
# Models on servers need no more. `--build-arg EXTRAS=hf,sbert` brings torch, for models in the container: that for CUDA,
# 2.7 GB, or with `--build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu` that for the CPU.
FROM python:3.11-slim
ARG EXTRAS=""
ARG PIP_EXTRA_INDEX_URL

# Spaces run as this user.
RUN useradd --create-home --uid 1000 sealegs && install --directory --owner=sealegs /runs

WORKDIR /opt/sealegs
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir -c constraints.txt ".${EXTRAS:+[$EXTRAS]}"

USER sealegs
WORKDIR /home/sealegs
# The cache is where any user may write.
ENV SEALEGS_APP_RUNS=/runs SEALEGS_APP_READ_ONLY=1 SEALEGS_CACHE=/tmp/sealegs PYTHONUNBUFFERED=1
EXPOSE 7860
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:7860/explained')"]

# A Space has another name than this machine: SPACE_HOST.
ENTRYPOINT ["sh", "-c", "SEALEGS_APP_ALLOW_HOST=${SEALEGS_APP_ALLOW_HOST:-$SPACE_HOST} exec sealegs \"$@\"", "sealegs"]
CMD ["app", "--host", "0.0.0.0", "--port", "7860", "--read-only", "--no-open"]
