#!/bin/sh
# Creates what perdure needs on a Temporal server. Repeating it has no further effect.
#
#   setup.sh schema      Temporal's two databases in PostgreSQL, at SQL_HOST, SQL_PORT as SQL_USER
#   setup.sh namespace   namespace, retention, and search attributes, at TEMPORAL_ADDRESS
set -eu

SCHEMA=${SCHEMA:-/etc/temporal/schema/postgresql/v12}
NAMESPACE=${TEMPORAL_NAMESPACE:-default}
RETENTION=720h
ATTRIBUTES='AgentName AgentStatus AgentReason'

# Updates one database to the newest schema. `setup-schema` does not reset a database beyond version 0.0.
migrate() {
  temporal-sql-tool --database "$1" create-database
  temporal-sql-tool --database "$1" setup-schema --version 0.0
  temporal-sql-tool --database "$1" update-schema --schema-dir "$SCHEMA/$2/versioned"
}

# Retries while the server starts, or until all its services have a new namespace.
with_retries() {
  tries=60
  until "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 1
  done
}

has_namespace() {
  temporal operator namespace describe --namespace "$NAMESPACE" >/dev/null 2>&1
}

make_namespace() {
  has_namespace || temporal operator namespace create --namespace "$NAMESPACE"
  with_retries temporal operator namespace update --namespace "$NAMESPACE" --retention "$RETENTION"
}

make_attributes() {
  known=$(with_retries temporal operator search-attribute list --namespace "$NAMESPACE")
  for name in $ATTRIBUTES; do
    echo "$known" | grep -qw "$name" ||
      temporal operator search-attribute create --namespace "$NAMESPACE" --name "$name" --type Keyword
  done
}

case "${1:-}" in
  schema)
    migrate temporal temporal
    migrate temporal_visibility visibility
    ;;
  namespace)
    with_retries temporal operator cluster health
    make_namespace
    make_attributes
    ;;
  *)
    echo 'usage: setup.sh schema|namespace' >&2
    exit 2
    ;;
esac
