// LangGraph's loop of a model and its tools, with each state written to PostgreSQL before the next node begins.
import { SystemMessage, HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { INSTRUCTIONS, MAX_STEPS, TOOL } from '../settings.js';
import { serve, work } from './process.js';

const { DATABASE_URL: url, OPENAI_BASE_URL: baseURL } = process.env;
const checkpointer = PostgresSaver.fromConnString(url);
await checkpointer.setup();
const tools = [
  tool(work, { name: TOOL.name, description: TOOL.description, schema: TOOL.parameters }),
];
const model = new ChatOpenAI({
  model: 'stub',
  apiKey: 'none',
  useResponsesApi: false,
  configuration: { baseURL },
}).bindTools(tools);
const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => ({
    messages: [await model.invoke([new SystemMessage(INSTRUCTIONS), ...messages])],
  }))
  .addNode('tools', new ToolNode(tools))
  .addEdge(START, 'model')
  .addConditionalEdges('model', toolsCondition, ['tools', END])
  .addEdge('tools', 'model')
  .compile({ checkpointer });

const settings = (id) => ({
  configurable: { thread_id: id },
  recursionLimit: MAX_STEPS,
  durability: 'sync',
});

serve({
  run: (id, message) => graph.invoke({ messages: [new HumanMessage(message)] }, settings(id)),
  recover: (id) => graph.invoke(null, settings(id)),
});
