export {
  aiSdkModel,
  type AiSdkLanguageModel,
  type AiSdkModelOptions,
} from './models/ai-sdk/model.js';
