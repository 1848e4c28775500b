package access

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/lectern-dev/lectern/cli/internal/shell"
	"github.com/lectern-dev/lectern/proxy/explain"
	"github.com/lectern-dev/lectern/proxy/manifest"
)

// Proxy is the command group lectern proxy, which has the commands for the credential proxy.
type Proxy struct {
	Check proxyCheck `cmd:"" help:"Report which rule of the credential proxy allows or refuses a request, without sending it."`
}

type proxyCheck struct {
	Manifests    string   `env:"PROXY_MANIFESTS" type:"path" required:"" help:"The folder of manifests." placeholder:"FOLDER"`
	Project      string   `short:"p" env:"LECTERN_PROJECT_ID" required:"" help:"The project's id, as X-Project-ID." placeholder:"ID"`
	Environment  string   `short:"e" env:"LECTERN_ENVIRONMENT" required:"" help:"The environment, as X-Environment, such as prod." placeholder:"NAME"`
	Origin       string   `help:"The page's origin, such as https://app.example.com. Without it, only endpoints with access by key apply." placeholder:"ORIGIN"`
	WithKey      bool     `help:"Assume that the request has an API key of the project with the scope proxy:use."`
	Method       string   `short:"X" default:"GET" help:"The method. Default: ${default}." placeholder:"METHOD"`
	Header       []string `short:"H" sep:"none" help:"A header, with its placeholders; repeatable." placeholder:"'NAME: VALUE'"`
	BodyTemplate string   `type:"path" help:"A body with placeholders; - is standard input. Set its type by --header 'Content-Type: …'." placeholder:"FILE"`
	shell.OutputFlags
	URL string `arg:"" help:"The target, not escaped."`
}

// Help returns the text of lectern proxy check --help: the exit codes, and examples.
func (proxyCheck) Help() string {
	return `The command reads the manifests and decides as the proxy does, but sends nothing. It does not look up the target's address, so it cannot know whether that is public. It shows no value of a credential.

Exit codes: 0 the request is allowed; 1 it is refused; 2 the command line or the manifests are wrong.

Examples:

	lectern proxy check --manifests ./proxy --project pr_1 --environment prod --origin https://app.example.com --header 'Authorization: Bearer {{ cred_stripe }}' https://api.stripe.com/v1/charges
	lectern proxy check --manifests ./proxy -p pr_1 -e prod --with-key -X POST -H 'Content-Type: application/json' --body-template login.json https://api.example.org/login
	lectern proxy check --manifests ./proxy -p pr_1 -e prod --origin https://app.example.com -X OPTIONS -H 'Access-Control-Request-Method: POST' https://api.stripe.com/v1/charges`
}

// maxTemplate is the maximum size of the body that the command reads, in bytes. The default limit of a proxy is
// lower, so the check refuses a body that was cut at maxTemplate.
const maxTemplate = 11 << 20

// Run reads the manifests and prints how the proxy would decide about the request. Run returns an error if the proxy
// would refuse the request.
func (p *proxyCheck) Run(s *shell.Session) error {
	question, err := p.question(s)
	if err != nil {
		return shell.Usage(err)
	}
	snapshot, warnings, err := manifest.Load(p.Manifests)
	if err != nil {
		return shell.Usage(fmt.Errorf("the manifests in %s: %w", p.Manifests, err))
	}
	for _, w := range warnings {
		s.Note("warning: %v", w)
	}
	report, err := explain.Ask(snapshot, question)
	if err != nil {
		return shell.Usage(err)
	}
	if err := p.print(s, report); err != nil {
		return err
	}
	if !report.Allowed {
		return fmt.Errorf("the request is refused: %s", report.Code)
	}
	return nil
}

// question returns the request that the flags describe, for [explain.Ask]. A malformed header and an unreadable body
// are errors.
func (p *proxyCheck) question(s *shell.Session) (explain.Question, error) {
	q := explain.Question{
		Project: p.Project, Environment: p.Environment, Origin: p.Origin, Keyed: p.WithKey,
		Method: p.Method, Target: p.URL, Header: http.Header{},
	}
	for _, line := range p.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return q, fmt.Errorf("--header was given as %q; allowed: 'NAME: VALUE'", line)
		}
		q.Header.Add(name, strings.TrimSpace(value))
	}
	if p.BodyTemplate == "" {
		return q, nil
	}
	body, err := readTemplate(s, p.BodyTemplate)
	if err != nil {
		return q, fmt.Errorf("--body-template: %w", err)
	}
	q.Body = body
	q.Header.Set("X-Use-Body-Templating", "true")
	return q, nil
}

// readTemplate reads at most [maxTemplate] bytes of a body from a file or, for "-", from standard input. An empty body
// is an error.
func readTemplate(s *shell.Session, path string) ([]byte, error) {
	in := s.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	body, err := io.ReadAll(io.LimitReader(in, maxTemplate))
	if err == nil && len(body) == 0 {
		err = errors.New("it is empty")
	}
	return body, err
}

// reportOutput is an [explain.Report] with the field names of the command's output in JSON.
type reportOutput struct {
	Allowed     bool     `json:"allowed"`
	Code        string   `json:"code,omitempty"`
	Message     string   `json:"message,omitempty"`
	Why         string   `json:"why,omitempty"`
	Preflight   bool     `json:"preflight,omitempty"`
	Endpoint    string   `json:"endpoint,omitempty"`
	Target      string   `json:"target,omitempty"`
	Credentials []string `json:"credentials"`
	Advice      []string `json:"advice,omitempty"`
	Verdicts    []string `json:"verdicts"`
}

func (p *proxyCheck) print(s *shell.Session, r explain.Report) error {
	if p.Format(s) == "table" {
		_, err := io.WriteString(s.Out, r.String())
		return err
	}
	return p.PrintValue(s, reportOutput{
		r.Allowed, r.Code, r.Message, r.Why, r.Preflight, r.Endpoint, r.Target,
		append([]string{}, r.Credentials...), r.Advice, append([]string{}, r.Verdicts...),
	})
}
