# Two stages: what installs stays behind, what runs has no compiler and no root.
FROM python:3.11-slim-bookworm AS install
WORKDIR /app
# Neither pip nor setuptools stays in the image: the base's are old, and nothing that runs needs them.
RUN python -m venv /pip && /pip/bin/pip install --no-cache-dir --upgrade pip
RUN python -m venv --without-pip /venv
COPY requirements.lock requirements-extras.lock ./
# The extras are the system voice and yt-dlp.
RUN /pip/bin/pip --python /venv/bin/python install --no-cache-dir --no-deps --require-hashes \
    -r requirements.lock -r requirements-extras.lock

FROM python:3.11-slim-bookworm
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MODE=production \
    DATA_DIR=/data \
    VIDEO_TOOL=/venv/bin/yt-dlp \
    WEB_HOST=0.0.0.0
# pg_dump, pg_restore and psql, for manage.py backup and restore; of version 15, as the database of compose.yaml. The
# fonts are for Chinese, Japanese and Korean on pictures and in films.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends fonts-noto-cjk postgresql-client-15 \
    && rm -rf /var/lib/apt/lists/*
RUN if python -m pip --version; then python -m pip uninstall --yes pip setuptools wheel; fi
# A new volume takes its owner from the folder that it covers.
RUN useradd --system --uid 10001 --create-home service && install -d -o service /data /media /backups
COPY --from=install /venv /venv
WORKDIR /app
COPY manage.py gunicorn.conf.py pyproject.toml LICENSE NOTICE ./
COPY config config
COPY accounts accounts
COPY pipeline pipeline
COPY webhooks webhooks
COPY analytics analytics
COPY templates templates
COPY static static
COPY docs docs
# The service may not write to its code, so that each start would compile it anew.
RUN python -m compileall -q --invalidation-mode unchecked-hash accounts analytics config pipeline webhooks
USER service
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.build_opener(u.ProxyHandler({})).open('http://127.0.0.1:' + os.environ.get('PORT', '8000') + '/readyz', timeout=4)"]
# Embedded mode: web, worker and beat in one process. docs/running.md has the commands for separate ones.
CMD ["sh", "-c", "python manage.py migrate --no-input && python manage.py collectstatic --no-input && exec python manage.py serve"]
