package catalog

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// stage is what both a Dockerfile and the catalog say of a stage.
type stage struct {
	Base       string
	Copies     []Copy
	Runs       []string // with single spaces
	Env        []string
	User       string
	Workdir    string
	Entrypoint []string
	Cmd        []string
	Labels     map[string]string
	// Other is what has no counterpart in hack/image.
	Other []string
}

const (
	dockerfilePath = "../../../Dockerfile"
	testVersion    = "v1.2.3"
	// debianImage is the image whose packages mmdebstrap's variant minbase gives.
	debianImage = "debian:bookworm-slim"
	goImage     = "golang:1.26.8-bookworm"
)

// fromCatalog gives the stages that the catalog describes.
func fromCatalog() map[string]stage {
	stages := map[string]stage{
		// hack/image compiles in the checkout; this stage brings it to the compiler.
		"build": {
			Base: goImage, Workdir: "/src", Env: GoEnv, Runs: []string{"go mod download"},
			Copies: []Copy{{Source: "go.mod", Target: "./"}, {Source: "go.sum", Target: "./"}, {Source: ".", Target: "."}},
			Other:  []string{"TARGETOS", "TARGETARCH"},
		},
	}
	for _, b := range Binaries {
		flags := GoFlags("$VERSION")
		flags[len(flags)-1] = `"` + flags[len(flags)-1] + `"`
		stages[b.Stage] = stage{Base: "build", Runs: []string{fmt.Sprintf(
			"GOOS=$TARGETOS GOARCH=$TARGETARCH go build %s -o %s %s", strings.Join(flags, " "), b.Output, b.Package)}}
	}
	for _, r := range Roots {
		stages[r.Stage] = stage{Base: debianImage, Runs: []string{fmt.Sprintf(
			"apt-get update && apt-get install -y --no-install-recommends %s && sh /mnt/%s %s",
			strings.Join(r.Packages, " "), r.Script, strings.Join(r.Args, " "))}}
	}
	for _, i := range Images {
		base := i.Base
		if base == "" {
			base = "scratch"
		}
		stages[i.Name] = stage{
			Base: base, Copies: i.Copies, Env: i.Env, User: i.User, Workdir: i.Workdir,
			Entrypoint: i.Entrypoint, Cmd: i.Cmd, Labels: i.Labels(testVersion),
		}
	}
	return stages
}

// fromDockerfile gives the stages of a Dockerfile.
func fromDockerfile(text string) (map[string]stage, error) {
	parsed, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	all, global, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, err
	}
	args := shell.EnvsFromSlice(argDefaults(global))
	words := shell.NewLex('\\')
	stages := map[string]stage{}
	for _, s := range all {
		base, _, err := words.ProcessWord(s.BaseName, args)
		if err != nil {
			return nil, err
		}
		read := stage{Base: base}
		for _, command := range s.Commands {
			if err := read.add(command); err != nil {
				return nil, fmt.Errorf("stage %s: %w", s.Name, err)
			}
		}
		stages[s.Name] = read
	}
	return stages, nil
}

func argDefaults(args []instructions.ArgCommand) []string {
	var env []string
	for _, command := range args {
		for _, arg := range command.Args {
			env = append(env, arg.Key+"="+arg.ValueString())
		}
	}
	return env
}

func (s *stage) add(command instructions.Command) error {
	switch c := command.(type) {
	case *instructions.CopyCommand:
		for _, source := range c.SourcePaths {
			s.Copies = append(s.Copies, Copy{Stage: c.From, Source: source, Target: c.DestPath})
		}
		if c.Chown != "" || c.Chmod != "" || len(c.ExcludePatterns) > 0 || len(c.SourceContents) > 0 {
			s.Other = append(s.Other, c.String())
		}
	case *instructions.RunCommand:
		s.Runs = append(s.Runs, strings.Join(strings.Fields(strings.Join(c.CmdLine, " ")), " "))
	case *instructions.EnvCommand:
		for _, pair := range c.Env {
			s.Env = append(s.Env, pair.String())
		}
	case *instructions.LabelCommand:
		return s.addLabels(c)
	case *instructions.UserCommand:
		s.User = c.User
	case *instructions.WorkdirCommand:
		s.Workdir = c.Path
	case *instructions.EntrypointCommand:
		s.Entrypoint = execForm(c.ShellDependantCmdLine)
	case *instructions.CmdCommand:
		s.Cmd = execForm(c.ShellDependantCmdLine)
	case *instructions.ArgCommand:
		s.addArgs(c)
	default:
		s.Other = append(s.Other, fmt.Sprint(command))
	}
	return nil
}

func (s *stage) addLabels(c *instructions.LabelCommand) error {
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	expand := shell.NewLex('\\')
	for _, pair := range c.Labels {
		value, _, err := expand.ProcessWord(pair.Value, shell.EnvsFromSlice([]string{"VERSION=" + testVersion}))
		if err != nil {
			return err
		}
		s.Labels[pair.Key] = value
	}
	return nil
}

// addArgs notes every argument but VERSION=dev, which the catalog has too.
func (s *stage) addArgs(c *instructions.ArgCommand) {
	for _, arg := range c.Args {
		switch {
		case arg.Value == nil:
			s.Other = append(s.Other, arg.Key)
		case arg.Key != "VERSION" || *arg.Value != "dev":
			s.Other = append(s.Other, arg.Key+"="+*arg.Value)
		}
	}
}

// execForm is what the container is told to run: a command in shell form runs in a shell.
func execForm(line instructions.ShellDependantCmdLine) []string {
	if line.PrependShell {
		return append([]string{"/bin/sh", "-c"}, line.CmdLine...)
	}
	return line.CmdLine
}

// difference tells where a Dockerfile and the catalog part, "" for nowhere.
func difference(dockerfile string) (string, error) {
	stages, err := fromDockerfile(dockerfile)
	if err != nil {
		return "", err
	}
	return cmp.Diff(fromCatalog(), stages, cmpopts.EquateEmpty()), nil
}

func readDockerfile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(dockerfilePath)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDockerfileAndCatalogDescribeTheSameImages(t *testing.T) {
	t.Parallel()
	diff, err := difference(readDockerfile(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" {
		t.Errorf("Dockerfile (+) and hack/image/catalog (-) differ; change both:\n%s", diff)
	}
}

func TestComparisonSeesADockerfileEditedAlone(t *testing.T) {
	t.Parallel()
	const title = `LABEL org.opencontainers.image.title="Berth gateway"`
	edits := map[string][2]string{
		"a file copied elsewhere":  {"/berth-controller\nUSER", "/controller\nUSER"},
		"a file copied more":       {"COPY --from=agent-build", "COPY go.mod /\nCOPY --from=agent-build"},
		"a file of another stage":  {"COPY --from=gateway-build", "COPY --from=agent-build"},
		"a copy with another mode": {"COPY --from=agent-build", "COPY --chmod=0700 --from=agent-build"},
		"another user":             {"USER 65532:65532", "USER 0:0"},
		"no user":                  {"USER 1000:1000\n", ""},
		"another entry point":      {`ENTRYPOINT ["/berth-agent"]`, `ENTRYPOINT ["/berth-agent", "serve"]`},
		"an entry point by shell":  {`ENTRYPOINT ["/berth-agent"]`, "ENTRYPOINT /berth-agent"},
		"another command":          {`CMD ["/bin/bash"]`, `CMD ["/bin/sh"]`},
		"another directory":        {"WORKDIR /workspace", "WORKDIR /home"},
		"another environment":      {"ENV LANG=C.UTF-8", "ENV LANG=C"},
		"another label":            {title, strings.Replace(title, "Berth", "The", 1)},
		"a fixed version":          {`image.version="$VERSION"`, `image.version="v1"`},
		"a package more":           {"jq less", "jq nano less"},
		"a package less":           {"procps python3", "procps"},
		"another script":           {"sh /mnt/sandbox.sh /", "sh /mnt/sandbox.sh / && rm -rf /usr/share"},
		"another base":             {"debian:bookworm-slim", "debian:trixie-slim"},
		"other compiler flags":     {"-trimpath ", ""},
		"C in programs":            {"CGO_ENABLED=0", "CGO_ENABLED=1"},
		"another Go":               {"golang:1.26.8-bookworm", "golang:1.27.0-bookworm"},
		"another program":          {"./cmd/gateway\n", "./cmd/controller\n"},
		"an instruction more":      {"FROM scratch AS agent\n", "FROM scratch AS agent\nVOLUME /data\n"},
		"a target more":            {"FROM scratch AS agent\n", "FROM scratch AS extra\nFROM scratch AS agent\n"},
	}
	text := readDockerfile(t)
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited := strings.Replace(text, edit[0], edit[1], 1)
			if edited == text {
				t.Fatalf("the Dockerfile no longer holds %q: the edit changes nothing", edit[0])
			}
			diff, err := difference(edited)
			if err != nil {
				t.Fatal(err)
			}
			if diff == "" {
				t.Error("the comparison found no difference")
			}
		})
	}
}
