module github.com/sigma/vmw-guestinfo

go 1.26
