FROM node:22.23.1-bookworm-slim@sha256:6c74791e557ce11fc957704f6d4fe134a7bc8d6f5ca4403205b2966bd488f6b3 AS build
WORKDIR /app
COPY package.json package-lock.json ./
# `prepare` would build before the sources are copied.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
# Some peer dependencies are also development dependencies. Deleting that list keeps them from being pruned.
RUN npm run build \
  && npm pkg delete devDependencies \
  && npm prune --ignore-scripts

FROM node:22.23.1-bookworm-slim@sha256:6c74791e557ce11fc957704f6d4fe134a7bc8d6f5ca4403205b2966bd488f6b3
# Temporal's client uses the system's certificate authorities.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* \
  && install --directory --owner=node --group=node /data
WORKDIR /app
ENV NODE_ENV=production PERDURE_HOME=/data
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY bin bin
COPY docker/worker-health.js docker/
USER node
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s --start-interval=5s \
  CMD ["node", "docker/worker-health.js"]
CMD ["node", "bin/perdure.js", "worker"]
