// A bot that answers from documents. `retrieve` runs on the worker, once per turn, before the model is
// called. Its documents follow the question as messages of the transcript, best first. A document from an
// earlier turn is not added again.
//   perdure run helpdesk "How long may I return a kettle?" --config examples/retrieval-bot/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';
import { find } from './documents.js';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'helpdesk',
      instructions:
        'Answer only from the documents and name the source. If they have no answer, say so.',
      retrieve: ({ query }) => find(query, { most: 2 }),
    }),
  ],
});
