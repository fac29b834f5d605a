# Asks for a password and shows a star for each character.
printf 'Password: '
while IFS= read -rsn1 char && [ -n "$char" ]; do printf '*'; done
echo
