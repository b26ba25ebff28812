package plan

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// NormalizeURL checks the base URL of an engine and gives it its one form: lower
// case, without the default port of its scheme and without a trailing slash. Two
// URLs of one engine become equal. The error is one clause about what is wrong.
func NormalizeURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("must start with http:// or https://")
	case u.Opaque != "" || u.Hostname() == "":
		return "", errors.New("has no host")
	case u.User != nil:
		return "", errors.New("must not hold user information")
	case u.Path != "" && u.Path != "/":
		return "", errors.New("must not hold a path")
	case u.RawQuery != "" || u.ForceQuery:
		return "", errors.New("must not hold a query")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return "", errors.New("must not hold a fragment")
	case strings.ContainsAny(u.Hostname(), " %\"<>\\^`{|}") || !Printable(u.Hostname()):
		return "", errors.New("has a host with characters that no host has")
	}
	return normalForm(u)
}

// normalForm puts the parts of a checked URL together.
func normalForm(u *url.URL) (string, error) {
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", errors.New("has a colon without a port")
		}
		return u.Scheme + "://" + host, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", errors.New("has a port outside 1..65535")
	}
	if u.Scheme == "http" && n == 80 || u.Scheme == "https" && n == 443 {
		return u.Scheme + "://" + host, nil
	}
	return u.Scheme + "://" + host + ":" + strconv.FormatUint(n, 10), nil
}

// CheckListen checks a host:port to listen on. The host may be empty, which is
// every address; port 0 is a free port. The error is one clause.
func CheckListen(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("is not host:port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has a port outside 0..65535")
	}
	if !Printable(host) || strings.ContainsAny(host, " /@") {
		return errors.New("has a host with characters that no host has")
	}
	return nil
}

// IsLoopback reports whether a host:port to listen on is reachable from this
// host only. A name other than localhost is not, since it may resolve to anything.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
