module github.com/mcsnap/mcsnap/e2e/lab/ignition260

go 1.26.0

tool github.com/coreos/ignition/v2/internal

require (
	cloud.google.com/go v0.58.0 // indirect
	cloud.google.com/go/storage v1.9.0 // indirect
	github.com/BurntSushi/toml v0.3.1 // indirect
	github.com/ajeddeloh/go-json v0.0.0-20170920214419-6a2fe990e083 // indirect
	github.com/aws/aws-sdk-go v1.30.28 // indirect
	github.com/coreos/go-semver v0.3.0 // indirect
	github.com/coreos/go-systemd/v22 v22.0.0 // indirect
	github.com/coreos/ignition/v2 v2.6.0 // indirect
	github.com/coreos/vcontext v0.0.0-20190529201340-22b159166068 // indirect
	github.com/godbus/dbus/v5 v5.0.3 // indirect
	github.com/golang/groupcache v0.0.0-20200121045136-8c9f03a8e57e // indirect
	github.com/golang/protobuf v1.4.2 // indirect
	github.com/google/renameio v0.1.0 // indirect
	github.com/googleapis/gax-go/v2 v2.0.5 // indirect
	github.com/jmespath/go-jmespath v0.3.0 // indirect
	github.com/jstemmer/go-junit-report v0.9.1 // indirect
	github.com/pin/tftp v2.1.0+incompatible // indirect
	github.com/vincent-petithory/dataurl v0.0.0-20160330182126-9a301d65acbb // indirect
	github.com/vmware/vmw-guestinfo v0.0.0-20170707015358-25eff159a728 // indirect
	github.com/vmware/vmw-ovflib v0.0.0-20170608004843-1f217b9dc714 // indirect
	go.opencensus.io v0.22.3 // indirect
	golang.org/x/lint v0.0.0-20200302205851-738671d3881b // indirect
	golang.org/x/mod v0.3.0 // indirect
	golang.org/x/net v0.0.0-20200602114024-627f9648deb9 // indirect
	golang.org/x/oauth2 v0.0.0-20200107190931-bf48bf16ab8d // indirect
	golang.org/x/sys v0.0.0-20200610111108-226ff32320da // indirect
	golang.org/x/text v0.3.2 // indirect
	golang.org/x/tools v0.0.0-20200610160956-3e83d1e96d0e // indirect
	golang.org/x/xerrors v0.0.0-20191204190536-9bdfabe68543 // indirect
	google.golang.org/api v0.26.0 // indirect
	google.golang.org/appengine v1.6.6 // indirect
	google.golang.org/genproto v0.0.0-20200610104632-a5b850bcf112 // indirect
	google.golang.org/grpc v1.29.1 // indirect
	google.golang.org/protobuf v1.24.0 // indirect
	honnef.co/go/tools v0.0.1-2020.1.4 // indirect
)
