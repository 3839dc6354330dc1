# One image for API, worker, beat and Ray nodes. CPU build of PyTorch unless --build-arg TORCH_INDEX= says otherwise.

FROM node:24-slim AS dashboard
WORKDIR /build/frontend
COPY frontend/package.json frontend/package-lock.json frontend/.npmrc ./
RUN npm ci
COPY frontend/ ./
RUN npm run build

FROM python:3.11-slim
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1
WORKDIR /app
# Rollout engines on processors compile their kernels for the machine they find themselves on.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN pip install -c constraints.txt ${TORCH_INDEX:+--extra-index-url $TORCH_INDEX} torch
COPY contract/ contract/
COPY backend/ backend/
COPY workers/ workers/
COPY cli/ cli/
COPY foredeck/ foredeck/
RUN pip install -c constraints.txt ".[server,workers]"
COPY alembic/ alembic/
COPY alembic.ini ./
COPY examples/ examples/
COPY --from=dashboard /build/frontend/dist frontend/dist
RUN useradd --create-home --uid 10001 foredeck && mkdir /storage && chown foredeck /storage
USER foredeck
# The packages of /app come before their installed copies, so that examples/ and frontend/dist are found beside them.
ENV PYTHONPATH=/app FOREDECK_HOME=/home/foredeck/.foredeck
EXPOSE 8600
CMD ["python", "-m", "uvicorn", "backend.main:app", "--host", "0.0.0.0", "--port", "8600", "--no-proxy-headers", "--http", "h11", "--no-server-header"]
