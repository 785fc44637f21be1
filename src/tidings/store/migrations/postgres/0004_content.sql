-- The content of the delivered event, a JSON object, if it had any.
ALTER TABLE deliveries ADD COLUMN content text;
