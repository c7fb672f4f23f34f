// An MCP server whose tool asks a person for a form before it acts. It speaks over stdin and stdout.
import { McpServer, acceptedContent, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const FORM = {
  type: 'object',
  properties: {
    seats: { type: 'integer', title: 'How many seats', minimum: 1, default: 1 },
    confirm: { type: 'boolean', title: 'Really book' },
  },
  required: ['seats', 'confirm'],
};

const text = (value) => ({ content: [{ type: 'text', text: value }] });

function createServer() {
  const server = new McpServer({ name: 'travel', version: '1.0.0' });
  const tool = { description: 'Books a train.', inputSchema: z.object({ city: z.string() }) };
  server.registerTool('book', tool, async ({ city }, { mcpReq }) => {
    const given = mcpReq.inputResponses;
    if (given === undefined) {
      const booking = inputRequired.elicit({
        message: `Book a train to ${city}?`,
        requestedSchema: FORM,
      });
      return inputRequired({ inputRequests: { booking } });
    }
    // The same call, with the answer; null if the person declined.
    const answer = acceptedContent(given, 'booking');
    return answer?.confirm === true
      ? text(`booked ${String(answer.seats)} to ${city}`)
      : text('not booked');
  });
  return server;
}

serveStdio(createServer);
