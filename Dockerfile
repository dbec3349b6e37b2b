# All of Berth's images, one target each:
#
#   docker build --target controller --build-arg VERSION=v0.1.0 -t ghcr.io/berth-dev/controller:v0.1.0 .
#
# Where no container engine is, hack/image builds the same images as tars. Its
# catalog says in Go what this file says, and a test there compares the two.

ARG GO_IMAGE=golang:1.26.8-bookworm
ARG DEBIAN_IMAGE=debian:bookworm-slim

# --- Go programs ---------------------------------------------------------------

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH
ENV CGO_ENABLED=0

FROM build AS controller-build
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/berth-controller ./cmd/controller

FROM build AS gateway-build
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/berth-gateway ./cmd/gateway

FROM build AS agent-build
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/berth-agent ./sandbox-agent

FROM scratch AS controller
ARG VERSION=dev
COPY hack/image/nonroot/ /
COPY --from=controller-build /out/berth-controller /berth-controller
USER 65532:65532
ENTRYPOINT ["/berth-controller"]
LABEL org.opencontainers.image.title="Berth controller" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/berth-dev/berth"

FROM scratch AS gateway
ARG VERSION=dev
COPY hack/image/nonroot/ /
COPY --from=gateway-build /out/berth-gateway /berth-gateway
USER 65532:65532
ENTRYPOINT ["/berth-gateway"]
LABEL org.opencontainers.image.title="Berth gateway" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/berth-dev/berth"

# Mounted into every sandbox as an image volume, so it holds the agent and nothing else.
FROM scratch AS agent
ARG VERSION=dev
COPY --from=agent-build /out/berth-agent /berth-agent
USER 65532:65532
ENTRYPOINT ["/berth-agent"]
LABEL org.opencontainers.image.title="Berth sandbox agent" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/berth-dev/berth"

# --- What runs in a sandbox: any image will do, these are ours --------------------

FROM ${DEBIAN_IMAGE} AS debian-sandbox
RUN --mount=type=bind,source=hack/image/debian,target=/mnt \
    apt-get update && apt-get install -y --no-install-recommends \
      bash ca-certificates coreutils curl findutils gawk git grep gzip jq less \
      procps python3 sed tar unzip \
 && sh /mnt/sandbox.sh /

FROM ${DEBIAN_IMAGE} AS debian-static
RUN --mount=type=bind,source=hack/image/debian,target=/mnt \
    apt-get update && apt-get install -y --no-install-recommends \
      bash-static busybox-static \
 && sh /mnt/static.sh / /out

FROM debian-sandbox AS sandbox
ARG VERSION=dev
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV LANG=C.UTF-8
USER 1000:1000
WORKDIR /workspace
CMD ["/bin/bash"]
LABEL org.opencontainers.image.title="Berth sandbox: Debian with bash, git, curl, jq and Python" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="LicenseRef-Debian" \
      org.opencontainers.image.source="https://github.com/berth-dev/berth"

FROM scratch AS sandbox-small
ARG VERSION=dev
COPY --from=debian-static /out/sandbox-small/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV LANG=C.UTF-8
USER 1000:1000
WORKDIR /workspace
CMD ["/bin/bash"]
LABEL org.opencontainers.image.title="Berth sandbox for tests: static bash and busybox" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="GPL-3.0-or-later AND GPL-2.0-only" \
      org.opencontainers.image.source="https://github.com/berth-dev/berth"

FROM scratch AS sandbox-busybox
ARG VERSION=dev
COPY --from=debian-static /out/sandbox-busybox/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER 1000:1000
WORKDIR /workspace
CMD ["/bin/sh"]
LABEL org.opencontainers.image.title="Berth sandbox for tests: sh without bash" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="GPL-2.0-only" \
      org.opencontainers.image.source="https://github.com/berth-dev/berth"

FROM scratch AS sandbox-noshell
ARG VERSION=dev
COPY --from=debian-static /out/sandbox-noshell/ /
USER 1000:1000
WORKDIR /workspace
LABEL org.opencontainers.image.title="Berth sandbox for tests: no shell at all" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/berth-dev/berth"
