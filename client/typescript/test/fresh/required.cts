import { Client, ConnectionError, type Project } from "@lectern/client";

const client = new Client({ baseURL: "http://127.0.0.1:1", apiKey: "rk_1", retry: { attempts: 1 } });
client.project("pr_demo").then(
  (project: Project) => console.log(project.title),
  (error: unknown) => console.log(error instanceof ConnectionError ? "CommonJS: connection error" : error),
);
