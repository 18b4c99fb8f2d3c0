module github.com/mcsnap/mcsnap

go 1.26.0
