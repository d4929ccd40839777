# An example of a test. It runs in both guests at once; NUMBER is 1 or 2, PEER the other guest's address. This test waits
# until the other guest is up, pings it, and checks that the frames went through the VF.
tries=0
until ping -c 1 -W 2 "$PEER" >/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || exit 1
done
ping -c 3 -W 10 "$PEER" || exit 1
[ "$(cat /sys/class/net/eth0/statistics/rx_packets)" -ge 4 ]
