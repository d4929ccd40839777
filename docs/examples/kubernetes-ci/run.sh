#!/bin/sh
# run.sh SOFTIOV FILES: creates a cluster of kind, installs SoftIOV from its checkout, and runs the suite of the folder
# FILES. Needs docker or podman, kind, kubectl, helm, Rust by rustup, and Go 1.26 or later.
set -eu
softiov=$1 files=$2
trap 'status=$?; [ $status = 0 ] || show; kind delete cluster; exit $status' EXIT
show() {
    kubectl get resourceslices,resourceclaims,pods --all-namespaces || true
    kubectl describe pod suite || true
    kubectl logs --namespace softiov-system --selector app.kubernetes.io/name=softiov --tail -1 --prefix || true
}

(cd "$softiov" && rustup target add x86_64-unknown-linux-musl)
(cd "$softiov" && cargo xtask image --tag localhost/softiov:0.1.0)
kind create cluster --config "$files/kind.yaml" --wait 5m
kind load image-archive "$softiov/target/image/softiov.tar"
kubectl create namespace softiov-system
kubectl label namespace softiov-system pod-security.kubernetes.io/enforce=privileged
helm install softiov "$softiov/kubernetes/chart" --namespace softiov-system --values "$files/values.yaml" --wait --timeout 5m
kubectl apply --filename "$files/suite.yaml"
kubectl wait --for jsonpath='{.status.phase}'=Succeeded pod/suite --timeout 5m
kubectl logs suite
