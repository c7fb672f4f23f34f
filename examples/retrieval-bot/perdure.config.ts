// A bot that answers from documents. `retrieve` runs on the worker, once per turn, before the model is
// called; what it finds stands behind the question as messages of the transcript, best first, and what
// stands there from an earlier turn is not added again.
//   perdure run helpdesk "How long may I return a kettle?" --config examples/retrieval-bot/perdure.config.ts
import { defineAgent, defineConfig } from 'perdure';
import { find } from './documents.js';

export default defineConfig({
  agents: [
    defineAgent({
      name: 'helpdesk',
      instructions:
        'Answer from the documents alone and name their source. If they do not say, say so.',
      retrieve: ({ query }) => find(query, { most: 2 }),
    }),
  ],
});
