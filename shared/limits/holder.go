package limits

import "net/netip"

// Holder identifies a taker of [Shares]. A taker is a project, an endpoint of the proxy, a namespace of Kubernetes, or the
// network of a client whose project is not known. The zero Holder is a client whose network is not known. No share bounds the zero Holder.
type Holder struct {
	name    string   // of a project, an endpoint or a namespace, or the text of an address that is none
	address [16]byte // the first of a network
	kind    holderKind
}

type holderKind uint8

const (
	project holderKind = iota + 1
	endpoint
	namespace
	unknown  // an address that is none
	network4 // an IPv4 address
	network6 // a /64
	around6  // a /48
	everything
)

// Everything is the Holder of what all holders of [Shares] have together.
var Everything = Holder{kind: everything}

// Project returns the project with the id as a Holder.
func Project(id string) Holder { return Holder{name: id, kind: project} }

// Endpoint returns the endpoint with the name as a Holder.
func Endpoint(name string) Holder { return Holder{name: name, kind: endpoint} }

// Namespace returns the namespace of Kubernetes with the name as a Holder.
func Namespace(name string) Holder { return Holder{name: name, kind: namespace} }

// Network returns the network of a client's IP address as a Holder: an IPv4 address, or an IPv6 /64. One IPv6 client
// usually has a whole /64 (RFC 6177). A text that is no address is a network of its own. The empty address is the zero
// Holder.
func Network(address string) Holder {
	if address == "" {
		return Holder{}
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return Holder{name: address, kind: unknown}
	}
	if ip = ip.Unmap(); ip.Is4() {
		return Holder{address: ip.As16(), kind: network4}
	}
	h := Holder{address: ip.As16(), kind: network6}
	clear(h.address[8:])
	return h
}

// Client returns the network of a client as a Holder. If known is false, the address may be that of a proxy for all
// clients, and Client returns the zero Holder, which has no share.
func Client(address string, known bool) Holder {
	if !known {
		return Holder{}
	}
	return Network(address)
}

// NetworkOf returns the text of the client's network that [Network] returns, for the keys of rates.
func NetworkOf(address string) string {
	h := Network(address)
	switch ip := netip.AddrFrom16(h.address); h.kind {
	case network4:
		return ip.Unmap().String()
	case network6:
		return netip.PrefixFrom(ip, 64).String()
	}
	return address
}

// around returns the /48 around an IPv6 network, and the zero Holder for other holders.
func (h Holder) around() Holder {
	if h.kind != network6 {
		return Holder{}
	}
	clear(h.address[6:])
	h.kind = around6
	return h
}
