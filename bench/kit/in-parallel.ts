/** Processes all items, this many at a time, and returns the results in their order. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  { atOnce }: { readonly atOnce: number },
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const waiting = items.entries();
  const lane = async (): Promise<void> => {
    for (const [index, item] of waiting) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return results;
}
