package stage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lectern-dev/lectern/shared/routes"
)

// StartEdge runs the edge before the service entries.
func (s *Stage) StartEdge(ctx context.Context, entries *Service) (*Service, error) {
	binary, err := s.Build(ctx, "services/edge/cmd/edge")
	if err != nil {
		return nil, err
	}
	public, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	internal, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	svc := &Service{
		URL:         "http://127.0.0.1:" + strconv.Itoa(public),
		InternalURL: "http://127.0.0.1:" + strconv.Itoa(internal),
	}
	cmd := exec.Command(binary, "serve")
	cmd.Env = s.environ(Definition{Environ: []string{
		"EDGE_SERVICES=" + string(routes.Entries) + "=" + strings.TrimPrefix(entries.URL, "http://"), "EDGE_KEYS=bench-edge-key-0123456789",
	}}, Database{}, public, internal)
	if svc.Process, err = start(cmd, filepath.Join(s.Folder, "edge-"+strconv.Itoa(public)+".log")); err != nil {
		return nil, err
	}
	s.onClose(svc.stopIfRunning)
	return svc, svc.until(ctx, func() bool { return answers(ctx, svc.InternalURL+"/readyz") })
}

// ErrNoTraefik is the error of StartTraefik if Traefik is not installed.
var ErrNoTraefik = errors.New("traefik is neither on PATH nor in the kit that CLUSTER_KIT names")

// traefik returns the path of Traefik's binary.
func traefik(ctx context.Context) (string, error) {
	if binary, err := exec.LookPath("traefik"); err == nil {
		return binary, nil
	}
	kit := os.Getenv("CLUSTER_KIT")
	if kit == "" {
		return "", ErrNoTraefik
	}
	folder, err := exec.CommandContext(ctx, filepath.Join(kit, "cluster"), "bin").Output()
	if err != nil {
		return "", fmt.Errorf("cluster bin: %w", err)
	}
	binary, err := exec.LookPath(filepath.Join(strings.TrimSpace(string(folder)), "traefik"))
	if err != nil {
		return "", ErrNoTraefik
	}
	return binary, nil
}

// StartTraefik runs Traefik before the service entries. It routes by regular expression, as it does with the chart if
// there is no edge, and has an access log and metrics.
func (s *Stage) StartTraefik(ctx context.Context, entries *Service) (*Service, error) {
	binary, err := traefik(ctx)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString("http:\n  routers:\n    ready: {rule: \"Path(`/ready`)\", service: ping@internal}\n")
	for _, r := range routes.Public() {
		if r.Service == routes.Entries {
			fmt.Fprintf(&text, "    %s: {rule: 'PathRegexp(`%s`)', service: entries}\n", r.Operation, routes.Regexp(r.Template))
		}
	}
	fmt.Fprintf(&text, "  services:\n    entries: {loadBalancer: {servers: [{url: '%s'}]}}\n", entries.URL)
	file := filepath.Join(s.Folder, "traefik.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	return s.startPlain(ctx, http.DefaultClient, "http://127.0.0.1:", func(address string) *exec.Cmd {
		cmd := exec.Command(binary, "--entrypoints.web.address="+address, "--providers.file.filename="+file, "--ping=true", "--ping.manualrouting=true",
			"--accesslog=true", "--accesslog.format=json", "--accesslog.filepath="+filepath.Join(s.Folder, "traefik-access.log"),
			"--metrics.prometheus=true", "--metrics.prometheus.manualrouting=true",
			"--global.checknewversion=false", "--global.sendanonymoususage=false")
		cmd.Env = []string{"HOME=" + s.Folder}
		return cmd
	})
}
