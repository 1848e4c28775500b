// A destination on Airbyte's connector kit of Faros: it keeps rows by their keys in a file, and returns a state once all
// rows before it are in the file.
const fs = require('fs');
const readline = require('readline');
const cdk = require('faros-airbyte-cdk');

class Files extends cdk.AirbyteDestination {
  async spec() {
    return new cdk.AirbyteSpec({ connectionSpecification: { type: 'object', properties: { file: { type: 'string' } } } });
  }

  async *write(config, _, catalog, stdin) {
    const tables = fs.existsSync(config.file) ? JSON.parse(fs.readFileSync(config.file)) : {};
    const keys = new Map(catalog.streams.map(({ stream }) => [stream.name, stream.source_defined_primary_key]));
    for await (const line of readline.createInterface({ input: stdin })) {
      const message = cdk.parseAirbyteMessage(line);
      if (message.type === cdk.AirbyteMessageType.RECORD) {
        const { stream, data } = message.record;
        const key = JSON.stringify(keys.get(stream).map(([name]) => data[name]));
        (tables[stream] ??= {})[key] = data;
        if (data._ab_cdc_deleted_at) delete tables[stream][key];
      } else if (cdk.isStateMessage(message)) {
        fs.writeFileSync(config.file, JSON.stringify(tables));
        yield message;
      }
    }
  }
}

new cdk.AirbyteDestinationRunner(new cdk.AirbyteLogger(cdk.AirbyteLogLevel.ERROR), new Files()).mainCommand().parse();
