/**
 * The data of the server-sent events in a body, in order. Lines end with CR, LF or both, wherever the
 * body is split; what stands behind the last empty line is no event. Takes time in proportion to the
 * body, however long its lines and however small its pieces.
 */
export async function* sseData(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const lines = lineSplitter();
  let data: string[] = [];
  for await (const chunk of body) {
    for (const line of lines(decoder.decode(chunk, { stream: true }))) {
      if (line !== '') {
        const value = dataIn(line);
        if (value !== undefined) data.push(value);
      } else if (data.length > 0) {
        yield data.join('\n');
        data = [];
      }
    }
  }
}

/** The value of a `data` field; undefined for other fields and comments. */
function dataIn(line: string): string | undefined {
  if (!line.startsWith('data')) return undefined;
  if (line.length === 4) return '';
  if (line[4] !== ':') return undefined;
  return line.slice(line[5] === ' ' ? 6 : 5);
}

/** Gives the lines that a piece of text completes; what it leaves open waits for the next piece. */
function lineSplitter(): (piece: string) => Generator<string> {
  let open: string[] = [];
  let endedInReturn = false;
  return function* split(piece) {
    let from = endedInReturn && piece.startsWith('\n') ? 1 : 0;
    if (piece !== '') endedInReturn = piece.endsWith('\r');
    let feed = piece.indexOf('\n', from);
    let carriage = piece.indexOf('\r', from);
    while (feed >= 0 || carriage >= 0) {
      const isCarriage = carriage >= 0 && (feed < 0 || carriage < feed);
      const end = isCarriage ? carriage : feed;
      yield [...open, piece.slice(from, end)].join('');
      open = [];
      from = isCarriage && feed === carriage + 1 ? end + 2 : end + 1;
      // Each is looked for only once it has been passed, so that no text is searched twice.
      if (feed >= 0 && feed < from) feed = piece.indexOf('\n', from);
      if (carriage >= 0 && carriage < from) carriage = piece.indexOf('\r', from);
    }
    if (from < piece.length) open.push(piece.slice(from));
  };
}
