# leafsql in an image of its own: one static program, certificate authorities, and nothing else. Its user has no rights.
#
#   docker build -t leafsql .
#   docker run --rm leafsql help
#   docker run --rm -p 8080:8080 -e LEAFSQL_DSN -e LEAFSQL_LISTEN=:8080 -e LEAFSQL_TOKEN leafsql serve
#   docker run --rm -p 127.0.0.1:3307:3307 -e LEAFSQL_DSN leafsql proxy -dsn env:LEAFSQL_DSN -listen :3307 -insecure
#
# With --target demo it holds the program of `make demo` instead.
ARG GO=1.26

FROM --platform=$BUILDPLATFORM golang:${GO} AS source
WORKDIR /src
COPY . .
ARG TARGETOS
ARG TARGETARCH
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOFLAGS="-trimpath -buildvcs=false -tags=timetzdata"

FROM source AS command
ARG VERSION
RUN cd cmd/leafsql && go build -ldflags="-s -w -X github.com/leafsql/leafsql/internal/version.built=$VERSION" -o /out/leafsql .

FROM source AS quickstart
RUN cd examples && go build -ldflags="-s -w" -o /out/quickstart ./quickstart

FROM scratch AS demo
COPY --from=quickstart /out/quickstart /quickstart
USER 65532:65532
ENTRYPOINT ["/quickstart"]

FROM scratch
COPY --from=command /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=command /out/leafsql /leafsql
USER 65532:65532
EXPOSE 8080 3307
ENTRYPOINT ["/leafsql"]
CMD ["help"]
