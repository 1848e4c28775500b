// Everything on the page comes from the host that serves it: no fonts, telemetry or services of others.
Scalar.createApiReference("#reference", {
  url: "openapi.json",
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  proxyUrl: "",
  layout: "modern",
  hideModels: true,
  authentication: { preferredSecurityScheme: "ApiKey" },
  defaultOpenAllTags: true,
});
