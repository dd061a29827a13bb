// The Bloom filter of a tutorial in Go: FNV-1a, its halves, an odd step. Reads texts, writes the bits in hex.
package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
)

func main() {
	m, _ := strconv.ParseUint(os.Args[2], 10, 64)
	k, _ := strconv.ParseUint(os.Args[3], 10, 64)
	bits := make([]byte, (m+7)/8)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		h := fnv.New64a()
		h.Write(lines.Bytes())
		sum := h.Sum64()
		h1, h2 := uint32(sum), uint32(sum>>32)|1
		for i := uint64(0); i < k; i++ {
			var at uint64
			if os.Args[1] == "fnv1a-go-32" {
				at = uint64((h1 + uint32(i)*h2) % uint32(m))
			} else {
				at = (uint64(h1) + i*uint64(h2)) % m
			}
			bits[at/8] |= 1 << (at % 8)
		}
	}
	fmt.Printf("%x\n", bits)
}
