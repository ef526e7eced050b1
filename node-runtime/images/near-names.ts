/** Which known names a mistyped one may have meant: shared beginnings and endings, then edit distance. */

/** At most `count` names, best first; none when nothing is near. */
export const nearest = <Name extends string>(wanted: string, known: readonly Name[], count: number): Name[] => {
  const allowed = Math.max(1, Math.floor(wanted.length / 3));
  return known
    .map((name) => ({ name, distance: distanceOf(wanted, name, allowed) }))
    .filter((candidate) => candidate.distance <= allowed)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, count)
    .map((candidate) => candidate.name);
};

/** A name that only lacks or adds a path or tag (`debian` for `team/debian:12`) counts as one edit. */
const distanceOf = (wanted: string, name: string, limit: number): number =>
  stemOf(wanted) === stemOf(name) ? 1 : Math.abs(wanted.length - name.length) > limit ? limit + 1 : editDistance(wanted, name);

const stemOf = (name: string): string => name.replace(/:.*$/, '').replace(/^.*\//, '');

const editDistance = (a: string, b: string): number => {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
};
