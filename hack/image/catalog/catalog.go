// Package catalog says what Berth's images are made of. It is the Dockerfile at
// the top of the repository in Go: the same stages, files, users and entry
// points, under the same names. A test compares the two.
package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Repository is where the images live: Repository/NAME:VERSION.
const Repository = "ghcr.io/berth-dev"

// Image is one final image, a Dockerfile target of the same name.
type Image struct {
	Name string
	// Base is the stage whose whole root the image starts from, "" for scratch.
	Base       string
	Copies     []Copy
	Env        []string // NAME=value
	User       string   // UID:GID
	Workdir    string   // there in Base or Copies
	Entrypoint []string
	Cmd        []string
	Title      string
	Licenses   string // an SPDX expression
}

// Copy takes Source of a stage, or of the build context when Stage is "", to
// Target. A Source that ends in a slash is a directory whose content is taken.
type Copy struct {
	Stage, Source, Target string
}

// Binary is a stage that builds one static Go program of the root module.
type Binary struct {
	Stage   string
	Package string // ./cmd/controller
	Output  string // /out/berth-controller
}

// Root is a stage made of Debian packages.
type Root struct {
	Stage    string
	Packages []string
	// Script is the file in hack/image/debian that finishes the root, Args its
	// arguments as seen from inside; the first one is the root itself.
	Script string
	Args   []string
	// Installed says that the packages are set up on top of a minimal Debian, as
	// apt-get does; else they are only unpacked, for the script to pick from.
	Installed bool
}

const (
	nonRoot     = "65532:65532"
	sandboxUser = "1000:1000"
	path        = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	apache      = "Apache-2.0"
)

// GoEnv is the environment of `go build` that decides what a program's bytes are.
var GoEnv = []string{"CGO_ENABLED=0"}

// Binaries lists the stages that build Go programs.
var Binaries = []Binary{
	{Stage: "controller-build", Package: "./cmd/controller", Output: "/out/berth-controller"},
	{Stage: "gateway-build", Package: "./cmd/gateway", Output: "/out/berth-gateway"},
	{Stage: "agent-build", Package: "./sandbox-agent", Output: "/out/berth-agent"},
}

// Roots lists the stages made of Debian packages.
var Roots = []Root{
	{
		Stage: "debian-sandbox",
		Packages: []string{
			"bash", "ca-certificates", "coreutils", "curl", "findutils", "gawk", "git", "grep", "gzip", "jq", "less",
			"procps", "python3", "sed", "tar", "unzip",
		},
		Script: "sandbox.sh", Args: []string{"/"},
		Installed: true,
	},
	{
		Stage:    "debian-static",
		Packages: []string{"bash-static", "busybox-static"},
		Script:   "static.sh", Args: []string{"/", "/out"},
	},
}

// Images lists the images, those that people run first.
var Images = []Image{
	{
		Name: "controller",
		Copies: []Copy{
			{Source: "hack/image/nonroot/", Target: "/"},
			{Stage: "controller-build", Source: "/out/berth-controller", Target: "/berth-controller"},
		},
		User: nonRoot, Entrypoint: []string{"/berth-controller"},
		Title: "Berth controller", Licenses: apache,
	},
	{
		Name: "gateway",
		Copies: []Copy{
			{Source: "hack/image/nonroot/", Target: "/"},
			{Stage: "gateway-build", Source: "/out/berth-gateway", Target: "/berth-gateway"},
		},
		User: nonRoot, Entrypoint: []string{"/berth-gateway"},
		Title: "Berth gateway", Licenses: apache,
	},
	{
		Name:   "agent",
		Copies: []Copy{{Stage: "agent-build", Source: "/out/berth-agent", Target: "/berth-agent"}},
		User:   nonRoot, Entrypoint: []string{"/berth-agent"},
		Title: "Berth sandbox agent", Licenses: apache,
	},
	{
		Name: "sandbox", Base: "debian-sandbox",
		Env:  []string{path, "LANG=C.UTF-8"},
		User: sandboxUser, Workdir: "/workspace", Cmd: []string{"/bin/bash"},
		Title: "Berth sandbox: Debian with bash, git, curl, jq and Python", Licenses: "LicenseRef-Debian",
	},
	{
		Name:   "sandbox-small",
		Copies: []Copy{{Stage: "debian-static", Source: "/out/sandbox-small/", Target: "/"}},
		Env:    []string{path, "LANG=C.UTF-8"},
		User:   sandboxUser, Workdir: "/workspace", Cmd: []string{"/bin/bash"},
		Title: "Berth sandbox for tests: static bash and busybox", Licenses: "GPL-3.0-or-later AND GPL-2.0-only",
	},
	{
		Name:   "sandbox-busybox",
		Copies: []Copy{{Stage: "debian-static", Source: "/out/sandbox-busybox/", Target: "/"}},
		Env:    []string{path},
		User:   sandboxUser, Workdir: "/workspace", Cmd: []string{"/bin/sh"},
		Title: "Berth sandbox for tests: sh without bash", Licenses: "GPL-2.0-only",
	},
	{
		Name:   "sandbox-noshell",
		Copies: []Copy{{Stage: "debian-static", Source: "/out/sandbox-noshell/", Target: "/"}},
		User:   sandboxUser, Workdir: "/workspace",
		Title: "Berth sandbox for tests: no shell at all", Licenses: apache,
	},
}

// Labels are the image's OCI labels at that version.
func (i Image) Labels(version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    i.Title,
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.licenses": i.Licenses,
		"org.opencontainers.image.source":   "https://github.com/berth-dev/berth",
	}
}

// GoFlags are the arguments of `go build` that decide what a program's bytes are.
func GoFlags(version string) []string {
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + version}
}

// Select returns the images of those names, in the order given; all of them for
// no name. An unknown name is an error that lists the known ones.
func Select(names []string) ([]Image, error) {
	if len(names) == 0 {
		return Images, nil
	}
	var selected []Image
	for _, name := range names {
		i := slices.IndexFunc(Images, func(i Image) bool { return i.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no image is named %q; there are %s", name, strings.Join(Names(), ", "))
		}
		selected = append(selected, Images[i])
	}
	return selected, nil
}

// Names lists the names of all images.
func Names() []string {
	names := make([]string, len(Images))
	for i, image := range Images {
		names[i] = image.Name
	}
	return names
}
