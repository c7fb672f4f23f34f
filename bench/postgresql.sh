#!/bin/sh
# Measures one, two, and four workers on a Temporal server with PostgreSQL, all on this machine:
#
#   sh bench/postgresql.sh [--quick] [--report]
#
# Builds the server with Go (once, some minutes), creates its databases, starts it, measures, and stops it.
# PostgreSQL runs already at SQL_HOST and SQL_PORT (127.0.0.1:5432), and SQL_USER may create databases; it and
# SQL_PASSWORD are `temporal` unless set. SCALE_DATABASE_CORES says to how many cores you have held PostgreSQL.
set -eu
cd "$(dirname "$0")/.."

VERSION=v1.32.0
PORT=17233
TOOLS="${PERDURE_BENCH_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/perdure/postgresql-$VERSION}"
export SQL_PLUGIN=postgres12 SQL_HOST="${SQL_HOST:-127.0.0.1}" SQL_PORT="${SQL_PORT:-5432}"
export SQL_USER="${SQL_USER:-temporal}" SQL_PASSWORD="${SQL_PASSWORD:-temporal}"

module=go.temporal.io/server
for part in server tools/sql; do
  [ -x "$TOOLS/${part##*/}" ] || GOBIN="$TOOLS" go install "$module/cmd/$part@$VERSION"
done
ln -sf sql "$TOOLS/temporal-sql-tool"
SCHEMA="$(go env GOMODCACHE)/$module@$VERSION/schema/postgresql/v12" PATH="$TOOLS:$PATH" sh docker/setup.sh schema

# The configuration that is built into the server reads these variables, as in docker-compose.yml.
env DB="$SQL_PLUGIN" DB_PORT="$SQL_PORT" POSTGRES_SEEDS="$SQL_HOST" POSTGRES_USER="$SQL_USER" \
  POSTGRES_PWD="$SQL_PASSWORD" BIND_ON_IP=127.0.0.1 LOG_LEVEL=error FRONTEND_GRPC_PORT="$PORT" \
  FRONTEND_HTTP_PORT=17243 FRONTEND_MEMBERSHIP_PORT=16933 HISTORY_GRPC_PORT=17234 HISTORY_MEMBERSHIP_PORT=16934 \
  MATCHING_GRPC_PORT=17235 MATCHING_MEMBERSHIP_PORT=16935 WORKER_GRPC_PORT=17239 WORKER_MEMBERSHIP_PORT=16939 \
  DYNAMIC_CONFIG_FILE_PATH=docker/dynamicconfig/perdure.yaml \
  "$TOOLS/server" --allow-no-auth start >"$TOOLS/server.log" 2>&1 &
server=$!
trap 'kill "$server"; wait "$server" || true' EXIT
trap 'exit 130' INT TERM
SCALE_ADDRESS="127.0.0.1:$PORT" SCALE_SERVER_PID="$server" npm run bench -- --only scale "$@"
