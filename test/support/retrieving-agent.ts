import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';

/** An agent that retrieves its documents from the ledger, which sees each attempt. */
export function retrievingAgent(ledgerUrl: string): Agent {
  return defineAgent({
    name: 'retrieving',
    instructions: 'answer from the documents',
    model: 'stub',
    retrieve: async ({ query }, { run, signal }) => {
      const body = JSON.stringify({ tool: 'retrieve', key: run.id, input: query });
      await fetch(ledgerUrl, { method: 'POST', body, signal });
      return [`about ${query}`, { text: 'and this', id: 'second' }];
    },
  });
}
