package pgdb

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A context that ends because a caller leaves has the server asked to cancel, and the connection is good again when
// it is known that the request is not on its way any more. One that ends for anything else says that the server
// does not answer: nobody asks it anything.
func TestEndOfAStatement(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    func(context.Context) context.Context
		server func(t *testing.T, request net.Conn) // what it does with a request to cancel; nil: there is to be none
		astray bool
	}{
		{"its caller leaves", leaves, func(t *testing.T, request net.Conn) {
			b := make([]byte, 16)
			if _, err := io.ReadFull(request, b); err != nil || binary.BigEndian.Uint32(b[4:]) != 80877102 || binary.BigEndian.Uint32(b[8:]) != 7 {
				t.Errorf("a request to cancel is %x, %v", b, err)
			}
			request.Close()
		}, false},
		{"its caller leaves, and the server says nothing", leaves, func(t *testing.T, request net.Conn) {
			t.Cleanup(func() { request.Close() })
		}, true},
		{"its time is over", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithDeadline(ctx, time.Now())
			cancel()
			return ctx
		}, nil, false},
		{"what it is of hangs", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errHangs)
			return ctx
		}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			near, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			cfg, err := pgconn.ParseConfig("postgres://u@127.0.0.1/db?sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			asked := make(chan struct{}, 1)
			cfg.BuildContextWatcherHandler = newSession
			cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				asked <- struct{}{}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			conn, err := pgconn.Construct(&pgconn.HijackedConn{
				Conn: near, PID: 7, SecretKey: []byte("1234"), TxStatus: 'I', Config: cfg, CustomData: map[string]any{},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := sessionOf(conn)
			s.bound(time.Now().Add(time.Hour))
			s.HandleCancel(tt.end(t.Context()))
			if tt.server != nil {
				select {
				case <-asked:
				case <-time.After(10 * time.Second):
					t.Fatal("the server was not asked to cancel")
				}
				request, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				tt.server(t, request)
			} else if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("who waits for the server gets %v", err)
			}
			s.HandleUnwatchAfterCancel()
			if tt.server == nil && len(asked) > 0 {
				t.Error("the server was asked")
			}
			if s.astray != tt.astray {
				t.Errorf("a request may be on its way: %v, want %v", s.astray, tt.astray)
			}
			if _, err := far.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := near.Read(make([]byte, 1)); err != nil {
				t.Errorf("its deadline of before is not there again: %v", err)
			}
		})
	}
}

// Who leaves a statement that is over at once asks the server nothing for it.
func TestLeavingWhatIsSoonOver(t *testing.T) {
	asked := make(chan struct{}, 1)
	conn := constructed(t, func(context.Context, string, string) (net.Conn, error) {
		asked <- struct{}{}
		return nil, net.ErrClosed
	})
	s := sessionOf(conn)
	for range 100 { // a busy machine may take longer than soon for one
		begin := time.Now()
		s.HandleCancel(leaves(t.Context()))
		s.HandleUnwatchAfterCancel()
		if took := time.Since(begin); took >= soon {
			select {
			case <-asked:
			default:
			}
		} else if len(asked) > 0 || s.astray {
			t.Fatalf("after %v: asked %d times; a request may be on its way: %v", took, len(asked), s.astray)
		} else {
			return
		}
	}
	t.Error("this machine is too busy to tell")
}

// constructed is a connection to a server that says nothing, which asks it to cancel over what dial gives.
func constructed(t *testing.T, dial pgconn.DialFunc) *pgconn.PgConn {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	cfg, err := pgconn.ParseConfig("postgres://u@127.0.0.1/db?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	cfg.BuildContextWatcherHandler = newSession
	cfg.DialFunc = dial
	conn, err := pgconn.Construct(&pgconn.HijackedConn{
		Conn: addressed{near}, PID: 7, SecretKey: []byte("1234"), TxStatus: 'I', Config: cfg, CustomData: map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// addressed is a connection whose other end is at an address.
type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func leaves(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
