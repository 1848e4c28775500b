//go:build !race

package rawtcp

func sending()  {}
func received() {}
