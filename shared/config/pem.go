package config

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// mostPEM bounds a file of certificates, in bytes.
const mostPEM = 1 << 20

// PEM reads a file of certificates or of a key, of at most 1 MiB. What is in it is for the caller to judge.
func PEM(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostPEM+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostPEM {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, mostPEM)
	}
	return text, nil
}

// Authorities reads the certificates of a file in PEM form, whoever they are of; one at least has to be in it.
func Authorities(path string) (*x509.CertPool, error) {
	text, err := PEM(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", path)
	}
	return pool, nil
}
