// Represents a search index.
const documents = [
  { id: 'returns', source: 'terms.md', text: 'A kettle may be returned within 30 days.' },
  {
    id: 'kettle',
    source: 'kettle.md',
    text: 'The kettle holds 1.7 liters and switches itself off.',
  },
  { id: 'delivery', source: 'terms.md', text: 'Delivery takes 3 days, to islands 5 days.' },
] as const;

const toWords = (text: string): readonly string[] => text.toLowerCase().match(/\w{4,}/g) ?? [];

/** Returns the documents that share the most words with the query, best first. */
export function find(query: string, { most }: { readonly most: number }) {
  const queryWords = new Set(toWords(query));
  return documents
    .map((document) => ({
      document,
      score: toWords(document.text).filter((word) => queryWords.has(word)).length,
    }))
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, most)
    .map(({ document }) => document);
}
