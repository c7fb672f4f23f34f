/** A key that occurs twice in one object, and where the second time; the text is valid JSON. */
export function findDuplicateKey(
  json: string,
): { readonly key: string; readonly at: number } | undefined {
  const seen: Set<string>[] = [];
  const places = /["{}]/g;
  for (let found = places.exec(json); found; found = places.exec(json)) {
    const at = found.index;
    if (found[0] === '{') seen.push(new Set());
    else if (found[0] === '}') seen.pop();
    else {
      const end = stringEnd(json, at);
      places.lastIndex = end;
      if (!isFollowedByColon(json, end)) continue;
      const key = String(JSON.parse(json.slice(at, end)));
      const keys = seen.at(-1);
      if (keys?.has(key)) return { key, at };
      keys?.add(key);
    }
  }
  return undefined;
}

function stringEnd(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function isFollowedByColon(json: string, from: number): boolean {
  const next = /[^\t\n\r ]/g;
  next.lastIndex = from;
  return next.exec(json)?.[0] === ':';
}
