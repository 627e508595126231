package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Hashes in eight goroutines that also give the garbage collector work.
func compute() {
	const workers, rounds = 8, 300
	data := make([]byte, 1<<14)
	sums := make([][32]byte, workers)
	var group sync.WaitGroup
	for w := range sums {
		w := w
		group.Add(1)
		go func() {
			defer group.Done()
			sums[w][0] = byte(w)
			for i := 0; i < rounds; i++ {
				sums[w] = sha256.Sum256(append(sums[w][:], data...))
			}
		}()
	}
	group.Wait()
	for _, sum := range sums {
		fmt.Printf("%x\n", sum[:8])
	}
}

// A number goes round a ring of goroutines.
func ring() {
	first := make(chan int)
	last := first
	for i := 0; i < 100; i++ {
		next := make(chan int)
		go func(from, to chan int) {
			for n := range from {
				to <- n + 1
			}
			close(to)
		}(last, next)
		last = next
	}
	total := 0
	for i := 0; i < 50; i++ {
		first <- i
		total += <-last
	}
	close(first)
	fmt.Println("ring", total)
}

func signals() {
	notified := make(chan os.Signal, 64)
	signal.Notify(notified, syscall.SIGUSR1)
	got := 0
	for i := 0; i < 20; i++ {
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		select {
		case <-notified:
			got++
		case <-time.After(10 * time.Second):
		}
	}
	fmt.Println("signals", got)
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path)
	}))
	var group sync.WaitGroup
	var mutex sync.Mutex
	bytes := 0
	for c := 0; c < 8; c++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 20; i++ {
				reply, err := http.Get(fmt.Sprintf("http://%s/%02d", listener.Addr(), i))
				if err != nil {
					fmt.Println(err)
					return
				}
				text, _ := io.ReadAll(reply.Body)
				reply.Body.Close()
				mutex.Lock()
				bytes += len(text)
				mutex.Unlock()
			}
		}()
	}
	group.Wait()
	fmt.Println("served", bytes)
}

func children() {
	for i := 0; i < 5; i++ {
		out, err := exec.Command("/bin/sh", "-c", fmt.Sprintf("echo child; exit %d", i)).Output()
		fmt.Printf("%s%v\n", out, err)
	}
}

func fault() {
	defer func() { fmt.Println("recovered:", recover()) }()
	var nothing *int
	*nothing = 1
}

// For LOAD_S seconds it gets what it got at first.
func again() {
	seconds, _ := strconv.Atoi(os.Getenv("LOAD_S"))
	chain := func() (sum [32]byte) {
		for i := 0; i < 2000; i++ {
			sum = sha256.Sum256(append([]byte{}, sum[:]...))
		}
		return
	}
	first := chain()
	var group sync.WaitGroup
	var wrong atomic.Int64
	for end, w := time.Now().Add(time.Duration(seconds)*time.Second), 0; w < 4; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) {
				if chain() != first {
					wrong.Add(1)
				}
			}
		}()
	}
	group.Wait()
	fmt.Println("wrong", wrong.Load())
}

func main() {
	for _, part := range []func(){compute, ring, signals, again, serve, children, fault} {
		part()
		runtime.GC()
	}
}
