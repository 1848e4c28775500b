package stage

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// StartPostGraphile installs that npm package into the run's folder and runs it on a database.
func (s *Stage) StartPostGraphile(ctx context.Context, db Database, version string) (*Service, error) {
	folder := filepath.Join(s.Folder, "postgraphile")
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", version)
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install %s: %w\n%s", version, err, out)
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	svc := &Service{Database: db, URL: "http://127.0.0.1:" + strconv.Itoa(port)}
	cmd := exec.Command(filepath.Join(folder, "node_modules", ".bin", "postgraphile"),
		"--connection", db.Reader, "--schema", "public", "--host", "127.0.0.1", "--port", strconv.Itoa(port),
		"--disable-graphiql", "--disable-query-log", "--max-pool-size", "8")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "NODE_ENV=production"}
	if svc.Process, err = start(cmd, filepath.Join(s.Folder, "postgraphile.log")); err != nil {
		return nil, err
	}
	s.onClose(svc.stopIfRunning)
	return svc, svc.until(ctx, func() bool { return answersQuery(ctx, svc.URL+"/graphql") })
}

func answersQuery(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"query":"{__typename}"}`))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
