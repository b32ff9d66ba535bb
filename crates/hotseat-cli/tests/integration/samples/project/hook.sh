# Stands for a function of env_test: writes down that it ran, and for what.
read -r told
printf '%s\n' "$told" >> hooks.jsonl
echo '{"data": {"userId": 7}}'
