package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/docent-zk/docent/test/compare/peer"
	"github.com/docent-zk/docent/test/compare/safety"
	"github.com/docent-zk/docent/test/compare/worker"
)

func main() {
	log.SetFlags(log.Ltime)
	if is, err := worker.Main(); is {
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	only := flag.String("only", "", "")
	svc := flag.String("service", "redis", "")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := worker.NewLauncher(".")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	r := safety.NewRunner(l, 8, log.Printf)
	rows, err := r.Run(ctx, *svc, func(k peer.Kind, f safety.Fault) bool {
		return strings.Contains(k.Name+" "+string(f), *only)
	})
	log.Println(len(rows), err)
}
