// Stands for a search index.
const documents = [
  { id: 'returns', source: 'terms.md', text: 'Whoever bought a kettle may return it for 30 days.' },
  {
    id: 'kettle',
    source: 'kettle.md',
    text: 'The kettle holds 1.7 litres and switches itself off.',
  },
  { id: 'delivery', source: 'terms.md', text: 'Delivery takes 3 days, to islands 5 days.' },
] as const;

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/\w{4,}/g) ?? [];

/** The documents that share most words with the query, best first. */
export function find(query: string, { most }: { readonly most: number }) {
  const wanted = new Set(wordsOf(query));
  return documents
    .map((document) => ({
      document,
      score: wordsOf(document.text).filter((word) => wanted.has(word)).length,
    }))
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, most)
    .map(({ document }) => document);
}
