const MAX_LENGTH = 100;

/** The candidates by edit distance to `name`, nearest first, equals in alphabetical order. */
export function nearestFirst(name: string, candidates: readonly string[]): string[] {
  const asked = name.slice(0, MAX_LENGTH).toLowerCase();
  return candidates
    .map((candidate) => ({
      candidate,
      distance: editDistance(asked, candidate.slice(0, MAX_LENGTH).toLowerCase()),
    }))
    .toSorted((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .map(({ candidate }) => candidate);
}

/** Insertions, deletions and replacements that turn one text into the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const inserted = (current[column - 1] ?? 0) + 1;
      const deleted = (previous[column] ?? 0) + 1;
      current.push(Math.min(replaced, inserted, deleted));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
