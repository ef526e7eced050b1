/**
 * The script that shows a stack of layers as one tree and packs that tree: in a mount namespace of its own, so that whoever kills it
 * leaves no mount, with loop devices that go with the mounts, so that it works on every kernel that has EROFS.
 *
 *   sh -euc SCRIPT name WORK LIST ARCHIVE    LIST: one line per layer, lowest first: image, then its data files, tab-separated
 *
 * Says `reserved PATH` and ends with RESERVED_EXIT when a name is one that OCI layers give a meaning to; `socket PATH` for each socket, which no
 * archive can hold.
 */
export const RESERVED_EXIT = 41;

export const MERGE_SCRIPT = `
work=$1 list=$2 archive=$3 lowers= n=0
attach() { losetup --read-only --find --show -- "$1"; }
while IFS= read -r line; do
  IFS='\t'; set -- $line; unset IFS
  image=$1 options=ro loops=; shift
  for data; do loop=$(attach "$data"); options=$options,device=$loop loops="$loops $loop"; done
  loop=$(attach "$image")
  mkdir "$work/$n"
  mount -t erofs -o "$options" "$loop" "$work/$n"
  losetup --detach $loops "$loop"
  lowers=$work/$n\${lowers:+:$lowers} n=$((n + 1))
done < "$list"
tree=$work/0
if [ $n -gt 1 ]; then
  tree=$work/merged
  mkdir "$tree"
  mount -t overlay -o "ro,redirect_dir=follow,lowerdir=$lowers" none "$tree"
fi
cd "$tree"
reserved=$(find . -name '.wh.*' -print -quit)
if [ -n "$reserved" ]; then printf 'reserved %s\\n' "$reserved"; exit ${RESERVED_EXIT}; fi
find . -type s -printf 'socket %p\\n'
exec tar --create --format=posix --pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f --numeric-owner --sort=name \\
  --xattrs '--xattrs-include=user.*' --xattrs-include=security.capability --warning=no-file-ignored --file="$archive" .
`;
