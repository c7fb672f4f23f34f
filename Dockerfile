# The image of a worker, from a checkout or from the npm package, which has `dist` in place of `src`.
FROM node:22.23.1-bookworm-slim@sha256:6c74791e557ce11fc957704f6d4fe134a7bc8d6f5ca4403205b2966bd488f6b3 AS build
WORKDIR /app
# .dockerignore lists what the context has.
COPY . .
# `prepare` would build again. Some peer dependencies are also development dependencies: deleting that
# list keeps them from being pruned. AWS's SDK, for PERDURE_STORE=s3://…, is optional elsewhere, not here.
RUN drop="npm pkg delete devDependencies peerDependenciesMeta.@aws-sdk/client-s3"; \
  if [ -d src ]; then \
    npm ci --ignore-scripts && npm run build && $drop && npm prune --ignore-scripts; \
  else \
    $drop && npm install --ignore-scripts --no-audit --no-fund; \
  fi

FROM node:22.23.1-bookworm-slim@sha256:6c74791e557ce11fc957704f6d4fe134a7bc8d6f5ca4403205b2966bd488f6b3
# Temporal's client uses the system's certificate authorities.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* \
  && install --directory --owner=node --group=node /data /agents
ENV NODE_ENV=production PERDURE_HOME=/data
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
COPY --from=build /app/package.json /app/
COPY --from=build /app/bin /app/bin
COPY --from=build /app/docker/worker-health.js /app/docker/
# The folder of the configuration; without one, that of the built-in agent.
WORKDIR /agents
USER node
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s --start-interval=5s \
  CMD ["node", "--env-file-if-exists=.env", "/app/docker/worker-health.js"]
# Variables that the container already has win over those of the file.
CMD ["node", "--env-file-if-exists=.env", "/app/bin/perdure.js", "worker"]
