module github.com/mcsnap/mcsnap/e2e/lab/ignition035

go 1.26.0

tool github.com/coreos/ignition/internal

require (
	github.com/ajeddeloh/go-json v0.0.0-20200220154158-5ae607161559 // indirect
	github.com/aws/aws-sdk-go v1.55.8 // indirect
	github.com/coreos/go-semver v0.3.1 // indirect
	github.com/coreos/go-systemd v0.0.0-20181031085051-9002847aa142 // indirect
	github.com/coreos/ignition v0.35.0 // indirect
	github.com/godbus/dbus v0.0.0-20181025153459-66d97aec3384 // indirect
	github.com/jmespath/go-jmespath v0.4.0 // indirect
	github.com/pin/tftp v2.1.0+incompatible // indirect
	github.com/sigma/vmw-guestinfo v0.0.0-00010101000000-000000000000 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/vincent-petithory/dataurl v1.0.0 // indirect
	github.com/vmware/vmw-ovflib v0.0.0-00010101000000-000000000000 // indirect
	go4.org v0.0.0-20260112195520-a5071408f32f // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace (
	github.com/sigma/vmw-guestinfo => ./vmwguestinfo
	github.com/vmware/vmw-ovflib => ./vmwovflib
)
