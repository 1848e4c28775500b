package capacity

import (
	"math"
	"slices"
)

// Demand is the peak load of an installation.
type Demand struct {
	// Projects is the number of projects. Their cost is that of their keys.
	Projects float64
	// Entries and Events are the stored records.
	Entries, Events float64

	// Gets, Lists, EventLists and ViewLists are requests a second: for one entry, and for lists of ten.
	Gets, Lists, EventLists, ViewLists float64
	// ExportRows are entries a second in long lists.
	ExportRows float64
	// IngestEntries and IngestEvents are ingested records a second.
	IngestEntries, IngestEvents float64
	// ActiveKeys are the keys that are used within the same minutes.
	ActiveKeys float64

	// Hot is the part of the data in daily use, which should fit into memory.
	Hot float64
	// Copies are the standbys of each database.
	Copies float64
}

// Machine describes one machine of an installation.
type Machine struct {
	Cores, MemoryGiB, DiskGiB float64
	// Speed is the speed of a core relative to one of the measured machine.
	Speed float64
	// Use is the part of its cores, and Fill that of its memory and disk, to plan with.
	Use, Fill float64
}

// Need holds the resources that a demand requires.
type Need struct {
	// ServiceCores, PostgresCores and RedisCores are cores of the machine, at its Use.
	ServiceCores, PostgresCores, RedisCores float64
	// DiskGiB is for one copy of the data; HotGiB for the part that should be in memory.
	DiskGiB, HotGiB float64
	// ServiceReplicas is the number of replicas with ReplicaCores each. ServiceMiB is the memory of one.
	ServiceReplicas, ServiceMiB float64
	// Connections is how many connections all replicas together may open to a database, and to that of the keys.
	Connections, KeyConnections float64
	// KeyQuestions is how often a second processes ask the key database for changed keys, however many keys are in
	// use.
	KeyQuestions float64
	// Workers is the number of workers by the resource that needs them, without standbys. Binding names the resource
	// that needs most.
	WorkersByCores, WorkersByDisk, WorkersByMemory float64
	Binding                                        string
	// Shards is how many shards the tables should have.
	Shards float64
}

// ReplicaCores is the number of cores of one replica of a service.
const ReplicaCores = 2

const (
	gib = 1 << 30
	mib = 1 << 20

	// poolPerCore is DATABASE_MAX_CONNS for each core, leastPool its least value.
	poolPerCore, leastPool = 4, 8
	// idleMiB is the resident memory of a service under load. A long list adds two chunks and garbage.
	idleMiB, listMiB = 45, 5
	// listsAtOnce is how many long lists at once a replica is planned for.
	listsAtOnce = 16
	// keyMiB is the memory of a key in a process.
	keyMiB = 300.0 / mib
	// questionsPerSecond is how often each process asks which keys have changed: every 300 ms.
	questionsPerSecond = 1 / 0.3
	// shardGiB is the size up to which a shard can be moved within an hour.
	shardGiB = 50
	// leastShards is Citus' default.
	leastShards = 32
)

// Need sizes an installation.
func (m Model) Need(d Demand, on Machine, p Points) Need {
	shapes := Shapes(p)
	var service, postgres, redis float64
	add := func(rate float64, c Measured) {
		service += rate * c.Service
		postgres += rate * c.Postgres
		redis += rate * c.Redis
	}
	add(d.Gets, m.Cost(shapes["get_one"]))
	add(d.Lists, m.Cost(shapes["list_10"]))
	add(d.EventLists, m.Cost(shapes["entry_events"]))
	add(d.ViewLists, m.Cost(shapes["page_views_10"]))
	if export := shapes["export"]; export.Rows > 0 {
		c := m.Cost(export)
		add(d.ExportRows, Measured{Service: c.Service / exportRows, Postgres: c.Postgres / exportRows, Redis: c.Redis / exportRows})
	}
	add(d.IngestEntries, m.Ingest)
	// An event is a row of about the size of an entry, and is stored the same way.
	add(d.IngestEvents, m.Ingest)
	cores := func(us float64) float64 { return us / 1e6 / on.Use / on.Speed }

	n := Need{ServiceCores: cores(service), PostgresCores: cores(postgres), RedisCores: cores(redis)}
	n.DiskGiB = (d.Entries*m.Entry + d.Events*m.Event) / gib
	n.HotGiB = n.DiskGiB * d.Hot
	n.ServiceReplicas = math.Max(2, math.Ceil(n.ServiceCores/ReplicaCores))
	n.ServiceMiB = idleMiB + listsAtOnce*listMiB + math.Min(d.ActiveKeys, 100_000)*keyMiB
	pool := math.Max(leastPool, poolPerCore*ReplicaCores)
	n.Connections = n.ServiceReplicas * pool * 2 // the reader's and the ingest's
	n.KeyConnections = n.ServiceReplicas * pool
	n.KeyQuestions = n.ServiceReplicas * questionsPerSecond

	n.WorkersByCores = math.Ceil(n.PostgresCores / on.Cores)
	n.WorkersByDisk = math.Ceil(n.DiskGiB / (on.DiskGiB * on.Fill))
	n.WorkersByMemory = math.Ceil(n.HotGiB / (on.MemoryGiB * on.Fill))
	for _, w := range []struct {
		by string
		n  float64
	}{{"processors", n.WorkersByCores}, {"disk", n.WorkersByDisk}, {"memory", n.WorkersByMemory}} {
		if w.n == n.Workers() && n.Binding == "" {
			n.Binding = w.by
		}
	}
	n.Shards = math.Max(leastShards, math.Exp2(math.Ceil(math.Log2(math.Max(1, math.Max(n.DiskGiB/shardGiB, 4*n.Workers()))))))
	return n
}

// Workers is how many primaries hold the data: 1 is one Postgres.
func (n Need) Workers() float64 {
	return math.Max(1, slices.Max([]float64{n.WorkersByCores, n.WorkersByDisk, n.WorkersByMemory}))
}
