package cache

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// maxInflated bounds the data of a node after decompression.
const maxInflated = 64 << 20

// decompress returns what data is the gzip of. It returns data itself with an error if it is not
// gzip, or too large. Curator writes no bytes for no bytes.
func decompress(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data, fmt.Errorf("decompress: %w", err)
	}
	inflated, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	switch {
	case err != nil:
		return data, fmt.Errorf("decompress: %w", err)
	case len(inflated) > maxInflated:
		return data, fmt.Errorf("decompress: %d bytes are more than %d inflated", len(data), maxInflated)
	}
	return inflated, nil
}
