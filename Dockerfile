# docker build -t axplore . && docker run --rm -v "$PWD/runs:/data/runs" axplore explore maze --radius 12 --epsilon 3
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-cache-dir /source \
    && NUMBA_CACHE_DIR=/opt/numba python -c 'import axplore; axplore.explore("maze", radius=2, epsilon=1)' \
    && chmod -R a+rX /opt/numba
ENV NUMBA_CACHE_DIR=/opt/numba
WORKDIR /data
ENTRYPOINT ["axplore"]
