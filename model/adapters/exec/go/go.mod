module treering/bbolt

go 1.18

require go.etcd.io/bbolt v1.3.8

require golang.org/x/sys v0.4.0 // indirect
